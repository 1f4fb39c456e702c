"""The first draft of a recipe: the three places of a capture, found by their shape."""
