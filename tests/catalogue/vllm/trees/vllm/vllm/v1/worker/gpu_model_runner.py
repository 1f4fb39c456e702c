"""The shape of vLLM's first model runner: its ways out, its dummy run, its prompts' log-probs."""
from contextlib import contextmanager

from shapes import Base, context

set_forward_context = record_function_or_nullcontext = context


class GPUModelRunner(Base):
    def __init__(self, vllm_config, device):
        super().__init__(vllm_config)
        self.device = device

    def execute_model(self, scheduler_output, intermediate_tensors=None):
        if self.execute_model_state is not None:
            raise RuntimeError("State error: sample_tokens() must be called")
        num_scheduled_tokens = scheduler_output.total_num_scheduled_tokens
        with (
            record_function_or_nullcontext("gpu_model_runner: preprocess"),
            self.synchronize_input_prep(),
        ):
            self.update_states(scheduler_output)
            if self.role == "encoder":
                with self.maybe_get_ec_connector_output(scheduler_output) as ec_connector_output:
                    return ec_connector_output
            if not num_scheduled_tokens:
                self._dummy_run(1)
                if self.role != "kv":
                    return "empty"
                return "no forward"
        with (
            set_forward_context(
                None,
                num_tokens=num_scheduled_tokens,
            ),
            record_function_or_nullcontext("gpu_model_runner: forward"),
            self.maybe_get_kv_connector_output(
                scheduler_output,
            ) as kv_connector_output,
        ):
            model_output = self._model_forward()
        with record_function_or_nullcontext("gpu_model_runner: postprocess"):
            if self.role == "middle":
                return model_output
            if self.role == "pooling":
                return f"pooled {kv_connector_output}"
        self.execute_model_state = scheduler_output
        return None

    def sample_tokens(self, grammar_output):
        if self.execute_model_state is None:
            return None
        self.execute_model_state = None
        return self._get_prompt_logprobs_dict("hidden states", {})

    def _get_prompt_logprobs_dict(self, hidden_states, num_scheduled_tokens):
        if not self.prompts:
            return {}
        prompt_logprobs_dict = self.prompt_logprobs()
        self.prompts.clear()
        return prompt_logprobs_dict

    def _model_forward(self):
        return self.model()

    def _dummy_run(self, num_tokens):
        with set_forward_context(None):
            return self.model()

    @contextmanager
    def synchronize_input_prep(self):
        yield

    maybe_get_ec_connector_output = maybe_get_kv_connector_output = staticmethod(context)
