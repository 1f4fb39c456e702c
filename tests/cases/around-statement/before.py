def f(x):
    with a:
        # forward
        out = model(
            """text
  kept""",
        )  # tail
        return out
