# licence
# two lines

import verl.probe  # probepatch: import


@final
class A:
    pass
