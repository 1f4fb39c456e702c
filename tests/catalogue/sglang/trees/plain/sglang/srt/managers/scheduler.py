class Req:
    def __init__(self, rid, origin_input_ids, return_logprob=False):
        self.rid = rid
        self.origin_input_ids = origin_input_ids
        self.return_logprob = return_logprob
        self.logprob_start_len = 0
        self.input_token_logprobs_val = None
        self.output_token_logprobs_val = [] if return_logprob else None


class Scheduler:
    def __init__(self):
        self.waiting = []

    def handle_generate_request(self, recv_req):
        req = Req(recv_req.rid, recv_req.input_ids, return_logprob=recv_req.return_logprob)
        if recv_req.logprob_start_len == -1:
            if recv_req.return_logprob:
                req.logprob_start_len = len(req.origin_input_ids) - 1
            else:
                req.logprob_start_len = -1
        else:
            req.logprob_start_len = recv_req.logprob_start_len
        self.waiting.append(req)

    def handle_batch_generate_request(self, recv_req):
        for tokenized_req in recv_req:
            self.handle_generate_request(tokenized_req)
