class ServerArgs:
    disable_cuda_graph: bool = False
    enable_piecewise_cuda_graph: bool = False
    skip_server_warmup: bool = False
    debug_tensor_dump_output_folder = None
    dp_size = 1

    def __init__(self, **given):
        vars(self).update(given)
        self.__post_init__()

    def __post_init__(self):
        self._handle_debug_utils()

        self._handle_other_validations()

    def _handle_debug_utils(self):
        pass

    def _handle_other_validations(self):
        if self.debug_tensor_dump_output_folder is not None:
            self.disable_cuda_graph = True
            self.skip_server_warmup = True
