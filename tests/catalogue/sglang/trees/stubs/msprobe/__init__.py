"""Stands for msprobe."""
