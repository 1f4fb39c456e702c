def f(server, rid):
    x = server.generate.remote(
        request_id=(uuid4().hex),  # new id
        n=1,
    )
    g()
    h(
        1,
        *x,  # rest
        **y  # more
    )
