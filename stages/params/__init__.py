"""Stage 5: whether the two sides' models are the same model, before anything is captured: config, modules, structure, weights."""
