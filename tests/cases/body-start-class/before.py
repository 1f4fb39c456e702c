class K(Base):
    """Doc."""

    a = 1
