"""The shape of vllm-ascend's runner with a debugger that is started and ended inline."""
from shapes import Base, context

set_ascend_forward_context = record_function_or_nullcontext = context


class NPUModelRunner(Base):
    def __init__(self, vllm_config, device):
        super().__init__(vllm_config)
        dump_cfg = vllm_config.dump_config_path
        self.debugger = None
        if dump_cfg is not None:
            if self.model_config.enforce_eager:
                from msprobe.pytorch import PrecisionDebugger

                self.debugger = PrecisionDebugger(dump_cfg)
            else:
                raise RuntimeError("Dumping/debugging only works in eager mode.")
        self.device = device

    def execute_model(self, scheduler_output, intermediate_tensors=None):
        with record_function_or_nullcontext("prepare input"):
            self.update_states(scheduler_output)
            if not scheduler_output.total_num_scheduled_tokens:
                return "empty"
        if self.debugger is not None:
            self.debugger.start(model=self.model)
        with (
            record_function_or_nullcontext("forward"),
            set_ascend_forward_context(None, model_instance=self.model),
            context(scheduler_output) as kv_connector_output,
        ):
            hidden_states = self._model_forward()
        with record_function_or_nullcontext("post process"):
            if self.role == "middle":
                if self.debugger is not None:
                    self.debugger.stop()
                    self.debugger.step()
                return hidden_states
            if self.role == "pooling":
                if self.debugger is not None:
                    self.debugger.stop()
                    self.debugger.step()
                return f"pooled {kv_connector_output}"
        self.execute_model_state = scheduler_output
        return None

    def sample_tokens(self, grammar_output):
        if self.execute_model_state is None:
            return None
        scheduler_output = self.execute_model_state
        self.execute_model_state = None
        prompt_logprobs_dict = self._bookkeeping_sync(scheduler_output)
        if self.debugger is not None:
            self.debugger.stop()
            self.debugger.step()
        return prompt_logprobs_dict

    def _bookkeeping_sync(self, scheduler_output):
        prompt_logprobs_dict = self._get_prompt_logprobs_dict(
            "hidden states",
            scheduler_output.num_scheduled_tokens,
        )
        return prompt_logprobs_dict

    def _model_forward(self):
        return self.model()

    def _get_prompt_logprobs_dict(self, hidden_states, num_scheduled_tokens):
        return self.prompt_logprobs()

    def _dummy_run(self, num_tokens):
        with set_ascend_forward_context(None):
            return self.model()
