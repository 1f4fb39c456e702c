"""The shape of vllm-ascend's second runner, which has no dump code."""
from shapes import Base


class NPUModelRunner(Base):
    def __init__(self, vllm_config, device):
        super().__init__(vllm_config)
        self.device = device
