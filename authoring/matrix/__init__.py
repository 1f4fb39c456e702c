"""Recipes by version: every distinct blob planned once, in parallel, from git objects and wheels."""
