# SPDX-License-Identifier: Apache-2.0
#
# A model of a few hundred kilobytes for a real server, and that server (llama.cpp's). Run by the Python that has both:
# tiny_model.py FOLDER CONTEXT writes the model, serves it and prints its address.
#
# Always true: which token follows depends on the one before it alone, so what the model says is known: behind the mark of a
# prompt with tools it calls `files`, behind every other token it begins its answer.

import sys
import time
from pathlib import Path

ANSWER = ["▁Hello", "▁from", "▁a", "▁real", "▁server", ",", "▁é漢"]
CALL = ["<tool_call>", '\n{"name":', '▁"files",', '▁"arguments":', '▁{"action":', '▁"list"}', "}\n", "</tool_call>"]
WITH_TOOLS, PLAIN = "<|with_tools|>", "<|plain|>"
TEMPLATE = """\
{%- if tools %}<|im_start|>system
# Tools
<tools>{% for tool in tools %}
{{ tool | tojson }}{% endfor %}
</tools>
Calls are written <tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call><|im_end|>
{% endif %}
{%- for message in messages %}
{%- if message.role == 'assistant' and message.tool_calls %}<|im_start|>assistant
{% for call in message.tool_calls %}<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% elif message.role == 'tool' %}<|im_start|>user
<tool_response>
{{ message.content }}
</tool_response><|im_end|>
{% else %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% if tools and messages[-1].role == 'user' and 'list' in messages[-1].content %}<|with_tools|>{% else %}<|plain|>{% endif %}{% endif %}"""
WIDTH = 320  # of a vector: a token's is a one at its number


def write_model(path):
    import gguf
    import numpy

    kinds = gguf.TokenType
    tokens = [("<unk>", kinds.UNKNOWN), ("<s>", kinds.CONTROL), ("</s>", kinds.CONTROL)]
    tokens += [(f"<0x{byte:02X}>", kinds.BYTE) for byte in range(256)]
    marks = [WITH_TOOLS, PLAIN]
    tokens += [(text, kinds.CONTROL) for text in marks]
    tokens += [(text, kinds.NORMAL) for text in ANSWER + CALL]
    number = {text: index for index, (text, _) in enumerate(tokens)}
    follows = numpy.full(len(tokens), number[ANSWER[0]])
    for chain in (ANSWER, CALL):
        for text, then in zip(chain, [*chain[1:], "</s>"]):
            follows[number[text]] = number[then]
    follows[number[WITH_TOOLS]] = number[CALL[0]]

    vectors = numpy.eye(len(tokens), WIDTH, dtype=numpy.float32)
    output = numpy.zeros((len(tokens), WIDTH), numpy.float32)
    for token, then in enumerate(follows):
        output[then, token] = 20
    zeros = numpy.zeros((WIDTH, WIDTH), numpy.float32)
    ones = numpy.ones(WIDTH, numpy.float32)

    out = gguf.GGUFWriter(path, "llama")
    out.add_context_length(65536)
    out.add_embedding_length(WIDTH)
    out.add_block_count(1)
    out.add_feed_forward_length(32)
    out.add_head_count(5)
    out.add_head_count_kv(5)
    out.add_layer_norm_rms_eps(1e-5)
    out.add_vocab_size(len(tokens))
    out.add_rope_dimension_count(WIDTH // 5)
    out.add_tokenizer_model("llama")
    out.add_token_list([text.encode() for text, _ in tokens])
    out.add_token_scores([0.0] * len(tokens))
    out.add_token_types([kind for _, kind in tokens])
    out.add_bos_token_id(1)
    out.add_eos_token_id(2)
    out.add_unk_token_id(0)
    out.add_add_bos_token(True)
    out.add_add_space_prefix(False)
    out.add_chat_template(TEMPLATE)
    for name, tensor in {
            "token_embd": vectors, "output_norm": ones, "output": output, "blk.0.attn_norm": ones, "blk.0.ffn_norm": ones,
            **{f"blk.0.attn_{part}": zeros for part in ("q", "k", "v", "output")},
            "blk.0.ffn_gate": zeros[:32], "blk.0.ffn_up": zeros[:32], "blk.0.ffn_down": zeros[:, :32].copy()}.items():
        out.add_tensor(f"{name}.weight", tensor)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def serve(path, context):
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = context
    params.n_parallel = 1
    params.use_jinja = True
    params.warmup = False
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_threads_http = 4
    return xllamacpp.Server(params)


if __name__ == "__main__":
    model = Path(sys.argv[1]) / "tiny.gguf"
    write_model(model)
    server = serve(model, int(sys.argv[2]))
    print(f"address: {server.listening_address}", flush=True)
    while True:
        time.sleep(3600)
