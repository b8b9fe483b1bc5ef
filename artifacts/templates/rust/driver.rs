// SPDX-License-Identifier: Apache-2.0
//! A whole driver: asks a server that speaks Chat Completions, one answer at a time.
//!
//! The runtime's request comes in as JSON and its answer goes out as JSON; the key is put into the request by the runtime, after it
//! has left this component. `murmur::stream::events::emit_chunk` is for a server that streams.

mod fetch;

wit_bindgen::generate!({ world: "driver", path: "wit", generate_all });

use exports::murmur::tool::run::{Guest, Status, ToolInput, ToolResult};
use serde_json::{json, Value};

struct Driver;

impl Guest for Driver {
    fn run(input: ToolInput) -> ToolResult {
        let told = ask(input.data.as_deref().unwrap_or("{}"))
            .unwrap_or_else(|error| json!({ "stop_reason": "error", "content": [], "error": error }));
        let data = Some(told.to_string());
        ToolResult { status: Status::Passed, summary: None, data, data_path: None, truncated: false, metadata: vec![] }
    }
}

fn ask(call: &str) -> Result<Value, String> {
    let call: Value = serde_json::from_str(call).map_err(|why| why.to_string())?;
    let endpoint = std::env::var("MURMUR_INFERENCE_ENDPOINT").map_err(|why| why.to_string())?;
    let url = format!("{}/v1/chat/completions", endpoint.trim_end_matches('/'));
    let headers = [("content-type", "application/json")];
    let response = fetch::fetch("POST", &url, &headers, request(&call).to_string().as_bytes())?;
    if response.status != 200 {
        return Err(format!("HTTP {}: {}", response.status, response.text().chars().take(500).collect::<String>()));
    }
    let told: Value = serde_json::from_slice(&response.body).map_err(|why| why.to_string())?;
    let stop = match told["choices"][0]["finish_reason"].as_str() {
        Some("tool_calls") => "tool_call",
        Some("length") => "max_tokens",
        Some("stop") => "end_turn",
        _ => "error",
    };
    let usage = json!({ "input_tokens": told["usage"]["prompt_tokens"], "output_tokens": told["usage"]["completion_tokens"] });
    Ok(json!({ "stop_reason": stop, "content": blocks(&told["choices"][0]["message"]), "usage": usage }))
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn request(call: &Value) -> Value {
    let mut messages = vec![];
    if let Some(system) = call["system"].as_str() {
        messages.push(json!({ "role": "system", "content": system }));
    }
    messages.extend(items(&call["messages"]).iter().map(message));
    let mut made = json!({ "model": call["model"], "max_tokens": call["max_tokens"], "messages": messages });
    let tools: Vec<_> = items(&call["tools"]).iter().map(|tool| json!({ "type": "function", "function": tool })).collect();
    if !tools.is_empty() {
        made["tools"] = tools.into();
    }
    made
}

fn message(given: &Value) -> Value {
    let content = items(&given["content"]);
    let text: Vec<_> = content.iter().filter(|block| block["type"] == "text").filter_map(|block| block["text"].as_str()).collect();
    let mut made = json!({ "role": given["role"], "content": text.join("\n") });
    if given["role"] == "tool" {
        made["tool_call_id"] = given["tool_call_id"].clone();
    }
    let calls: Vec<_> = content.iter().filter(|block| block["type"] == "tool_call").map(call_made).collect();
    if !calls.is_empty() {
        made["tool_calls"] = calls.into();
    }
    made
}

fn call_made(block: &Value) -> Value {
    let function = json!({ "name": block["name"], "arguments": block["input"].to_string() });
    json!({ "id": block["id"], "type": "function", "function": function })
}

fn blocks(message: &Value) -> Vec<Value> {
    let mut made = vec![];
    if let Some(text) = message["content"].as_str().filter(|text| !text.is_empty()) {
        made.push(json!({ "type": "text", "text": text }));
    }
    for call in items(&message["tool_calls"]) {
        let input: Value = serde_json::from_str(call["function"]["arguments"].as_str().unwrap_or("{}")).unwrap_or_default();
        made.push(json!({ "type": "tool_call", "id": call["id"], "name": call["function"]["name"], "input": input }));
    }
    made
}

export!(Driver);
