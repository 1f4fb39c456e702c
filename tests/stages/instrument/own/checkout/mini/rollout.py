"""Where the prompts come from."""


def generate():
    batch = []
    batch.append([1, 2, 3])
    return batch
