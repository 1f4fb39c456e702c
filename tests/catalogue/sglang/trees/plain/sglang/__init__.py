"""Stands for SGLang: the same statements around the patched places, and nothing else."""
