from sglang.srt.model_executor.forward_batch_info import ForwardBatch


class BaseTpWorker:
    def forward_batch_embedding(self, model_worker_batch):
        forward_batch = ForwardBatch.init_new(model_worker_batch, self.model_runner)
        return self.model_runner.forward(forward_batch)


class TpModelWorker(BaseTpWorker):
    def __init__(self, model_runner):
        self.model_runner = model_runner

    def forward_batch_generation(self, model_worker_batch, forward_batch=None, is_verify=False):
        if model_worker_batch is not None:
            forward_batch = ForwardBatch.init_new(model_worker_batch, self.model_runner)
        else:
            assert forward_batch is not None
        return self.model_runner.forward(forward_batch)

    def forward_batch_split_prefill(self, batch):
        forward_batch = ForwardBatch.init_new(batch, self.model_runner)
        return self.model_runner.forward(forward_batch)
