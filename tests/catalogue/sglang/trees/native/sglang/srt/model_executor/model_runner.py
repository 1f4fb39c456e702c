class Output:
    pass


class ModelRunner:
    def __init__(self, server_args, gpu_id=0, is_draft_worker=False, draft_model_idx=None):
        self.server_args = server_args
        self.gpu_id = gpu_id
        self.dp_size = server_args.dp_size
        self.is_draft_worker = is_draft_worker
        self.forward_pass_id = 0
        self.draft_model_idx = draft_model_idx
        self.model = "draft" if is_draft_worker else "model"

        self.msprobe_debugger = None
        if server_args.msprobe_dump_config is not None:
            self.init_msprobe()

    def init_msprobe(self):
        try:
            from msprobe.pytorch import PrecisionDebugger, seed_all
        except ImportError:
            return
        seed_all(mode=True)
        self.msprobe_debugger = PrecisionDebugger(config_path=self.server_args.msprobe_dump_config)

    def forward(self, forward_batch, skip_attn_backend_init=False, pp_proxy_tensors=None):
        self.forward_pass_id += 1

        if self.msprobe_debugger is not None:
            rank_id = self.gpu_id if self.dp_size is not None and self.dp_size > 1 else None
            self.msprobe_debugger.start(model=self.model, rank_id=rank_id)

        output = self._forward_raw(forward_batch)

        if self.msprobe_debugger is not None:
            self.msprobe_debugger.stop()
            self.msprobe_debugger.step()

        return output

    def _forward_raw(self, forward_batch):
        return Output()
