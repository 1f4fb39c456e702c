"""A bridge that needs a package which is not there."""

import transformer_engine_of_another_world  # noqa: F401


class NeedyBridge:
    pass
