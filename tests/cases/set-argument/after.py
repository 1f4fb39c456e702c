def f(server, rid):
    x = server.generate.remote(
        request_id=rid,  # new id
        n=1,
    )
    g(k=1)
    h(
        1,
        *x,  # rest
        **y, k=(1, 2)  # more
    )
