"""The shape of vllm-ascend's runner before it had a debugger."""
from contextlib import contextmanager, nullcontext

from shapes import Base, context

capture_async = set_ascend_forward_context = context


class NPUModelRunner(Base):
    def __init__(self, vllm_config, device):
        super().__init__(vllm_config)
        if device is not None:
            self.device = device

    def execute_model(self, scheduler_output, intermediate_tensors=None):
        with capture_async("prepare input"):
            self.update_states(scheduler_output)
            if not scheduler_output.total_num_scheduled_tokens:
                if self.role != "kv":
                    return "empty"
                return "no forward"
        with capture_async("forward"):
            with set_ascend_forward_context(
                    None,
                    num_actual_tokens=scheduler_output.
                    total_num_scheduled_tokens):
                hidden_states = self._generate_process_reqs_hidden_states()
        with capture_async("post process"):
            if self.role == "middle":
                return hidden_states
            if self.role == "pooling":
                return "pooled"
            prompt_logprobs_dict = self._get_prompt_logprobs_dict(
                hidden_states,
                scheduler_output.num_scheduled_tokens,
            )
        return prompt_logprobs_dict

    def _generate_process_reqs_hidden_states(self):
        return self.model()

    def _get_prompt_logprobs_dict(self, hidden_states, num_scheduled_tokens):
        return self.prompt_logprobs()

    def _dummy_run(self, num_tokens):
        with set_ascend_forward_context(None):
            return self.model()
