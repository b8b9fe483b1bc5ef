// SPDX-License-Identifier: Apache-2.0
//! A whole tool: JSON in, a text out.
//!
//! `std` works as everywhere: files of the work folder by relative names where the capsule grants them, `eprintln!` writes into the
//! tool's log, `std::env` has the session's variables. `fetch::fetch` asks servers, `murmur::stream::events::emit_chunk` shows
//! progress of the running task, `murmur::task::task::request_input` asks the person behind it.

mod fetch;

wit_bindgen::generate!({ world: "tool", path: "wit", generate_all });

use exports::murmur::tool::run::{Guest, Status, ToolInput, ToolResult};

struct Tool;

fn answer(status: Status, text: String) -> ToolResult {
    ToolResult { status, summary: None, data: Some(text), data_path: None, truncated: false, metadata: vec![] }
}

impl Guest for Tool {
    fn run(input: ToolInput) -> ToolResult {
        let call: serde_json::Value = serde_json::from_str(input.data.as_deref().unwrap_or("{}")).unwrap_or_default();
        match call["name"].as_str() {
            Some(name) => answer(Status::Passed, format!("Hello, {name}!")),
            None => answer(Status::Failed, "name: a string is needed".to_string()),
        }
    }
}

export!(Tool);
