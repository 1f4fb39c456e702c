from contextlib import contextmanager

FAULTS = []  # a truthy item: a rank failed during this forward


class Recorder:
    @contextmanager
    def with_forward_pass(self, forward_pass_id, forward_batch):
        yield {"metrics": forward_pass_id}


def get_global_expert_distribution_recorder():
    return Recorder()


class RankZeroFilter:
    def __init__(self, is_rank_zero):
        self.is_rank_zero = is_rank_zero


class Output:
    can_run_graph = False


class ModelRunner:
    def __init__(self, server_args, gpu_id=0, is_draft_worker=False, draft_model_idx=None):
        self.server_args = server_args
        self.gpu_id = gpu_id
        self.dp_size = server_args.dp_size
        self.is_draft_worker = is_draft_worker
        self.forward_pass_id = 0
        self.draft_model_idx = draft_model_idx
        self.model = "draft" if is_draft_worker else "model"
        self.eplb_manager = None
        self.forwards = []

    def _dummy_run(self, batch_size):
        self.forwards.append("dummy")

    def forward(self, forward_batch, skip_attn_backend_init=False, pp_proxy_tensors=None):
        self.forward_pass_id += 1

        with get_global_expert_distribution_recorder().with_forward_pass(
            self.forward_pass_id,
            forward_batch,
        ) as recorder_outputs:
            output = self._forward_raw(forward_batch, skip_attn_backend_init, pp_proxy_tensors)
            if FAULTS and FAULTS.pop():
                output = self._forward_raw(forward_batch, skip_attn_backend_init, pp_proxy_tensors)
        output.expert_distribution_metrics = recorder_outputs.get("metrics")

        if self.eplb_manager is not None:
            self.eplb_manager.on_forward_pass_end()

        return output

    def _forward_raw(self, forward_batch, skip_attn_backend_init, pp_proxy_tensors):
        self.forwards.append(forward_batch.forward_mode)
        if forward_batch.forward_mode == "broken":
            raise ValueError(f"Invalid forward mode: {forward_batch.forward_mode}")
        return Output()
