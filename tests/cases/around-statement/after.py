def f(x):
    with a:
        # forward
        # probepatch: around-statement/e
        dbg.start("""text
  kept""")
        try:
            out = model(
                """text
  kept""",
            )  # tail
        finally:  # probepatch: around-statement/e
            dbg.stop()
            dbg.step()
        return out
