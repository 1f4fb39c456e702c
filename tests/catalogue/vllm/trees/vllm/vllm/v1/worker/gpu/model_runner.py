"""The shape of vLLM's second model runner: dummy and warm-up runs go through execute_model as well."""
from types import SimpleNamespace

from shapes import Base, context

set_forward_context = context


class GPUModelRunner(Base):
    def __init__(self, vllm_config, device):
        super().__init__(vllm_config)
        self.device = device
        self.prompt_logprobs_worker = SimpleNamespace(compute_prompt_logprobs=self.prompt_logprobs)

    def _dummy_run(self, scheduler_output):
        self.execute_model(scheduler_output, dummy_run=True)

    def execute_model(self, scheduler_output, intermediate_tensors=None, dummy_run=False):
        if not dummy_run:
            self.update_states(scheduler_output)
            if scheduler_output.total_num_scheduled_tokens == 0:
                empty_output = "empty"
                return empty_output
            input_batch = self.input_batch
        else:
            input_batch = SimpleNamespace(req_ids=["req_0_cafe"])
        if self.role == "graph":
            model_output = self.model()
        else:
            with set_forward_context(
                None,
                num_tokens=scheduler_output.total_num_scheduled_tokens,
            ):
                model_output = self.model()
        self.execute_model_state = input_batch
        if self.role == "middle":
            return model_output
        return None

    def sample_tokens(self, grammar_output):
        if self.execute_model_state is None:
            return None
        self.execute_model_state = None
        prompt_logprobs_dict = self.prompt_logprobs_worker.compute_prompt_logprobs(
            "hidden states",
        )
        return prompt_logprobs_dict
