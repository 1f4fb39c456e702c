class Lengths(list):
    def tolist(self):
        return list(self)


class ForwardBatch:
    def __init__(self, mode, input_ids, seq_lens, extend=None, prefix=None):
        self.forward_mode = mode
        self.input_ids = input_ids
        self.seq_lens = Lengths(seq_lens)
        self.extend_seq_lens_cpu = extend
        self.extend_prefix_lens_cpu = prefix

    @classmethod
    def init_new(cls, batch, model_runner):
        return cls(batch.mode, batch.input_ids, batch.seq_lens, batch.extend, batch.prefix)
