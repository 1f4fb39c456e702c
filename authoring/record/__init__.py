"""A hand-edited checkout becomes a recipe: hunks, symbols, anchors, verbs, and a proof."""
