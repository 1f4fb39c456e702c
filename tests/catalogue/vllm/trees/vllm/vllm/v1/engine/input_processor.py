class InputProcessor:
    def process_inputs(self, request_id, params):
        if params.is_sampling:
            sampling_params = params.clone()
            if sampling_params.max_tokens is None:
                sampling_params.max_tokens = 16
            return sampling_params
        return params.clone()
