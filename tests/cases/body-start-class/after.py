class K(Base):
    """Doc."""
    probe = None  # probepatch: body-start-class/e

    a = 1
