"""``python -m mini.trainer``: one pass over one batch."""

import sys

from mini.rollout import generate


class Worker:
    def compute_log_prob(self, batch):
        outputs = []
        for micro_batch in batch:
            output = self.forward(micro_batch)
            outputs.append(output)
        return outputs

    def forward(self, micro_batch):
        return [len(micro_batch)]


if __name__ == "__main__":
    batch = generate()
    print(Worker().compute_log_prob(batch), sys.argv[1:])
