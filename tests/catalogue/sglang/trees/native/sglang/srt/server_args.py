class ServerArgs:
    disable_cuda_graph = False
    disable_piecewise_cuda_graph = False
    skip_server_warmup = False
    msprobe_dump_config = None
    dp_size = 1

    def __init__(self, **given):
        vars(self).update(given)
        self._handle_other_validations()

    def _handle_other_validations(self):
        if self.msprobe_dump_config is not None:
            self.disable_cuda_graph = True
            self.skip_server_warmup = True
