"""What became of an edit's place on another version, and the recipe carried there."""
