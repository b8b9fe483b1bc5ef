// SPDX-License-Identifier: Apache-2.0
//! The conformance tool of tool.py, in Rust.

mod fetch;

wit_bindgen::generate!({ world: "tool", path: "wit", generate_all });

use exports::murmur::tool::run::{Guest, Status, ToolInput, ToolResult};
use serde_json::Value;
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

struct Tool;

fn outcome(order: &Value) -> Result<String, String> {
    let word = |key: &str| order[key].as_str().unwrap_or_default();
    let text = word("text");
    match word("do") {
        "log" => {
            eprintln!("{text}");
            Ok("logged".to_string())
        }
        "write" => std::fs::write(word("path"), text).map(|()| "written".to_string()).map_err(|why| why.to_string()),
        "read" => std::fs::read_to_string(word("path")).map_err(|why| why.to_string()),
        "list" => {
            let entries = std::fs::read_dir(word("path")).map_err(|why| why.to_string())?;
            let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
            names.sort();
            Ok(names.join(" "))
        }
        "env" => Ok(std::env::var(text).unwrap_or("unset".to_string())),
        "config" => {
            let config: Value = serde_json::from_str(&std::env::var("MURMUR_ARTIFACT_CONFIG").unwrap()).unwrap();
            Ok(config[text].as_str().unwrap().to_string())
        }
        "progress" => {
            murmur::stream::events::emit_chunk(text);
            Ok("shown".to_string())
        }
        "ask" => Ok(murmur::task::task::request_input(text)),
        "clock" => {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
            Ok(if now.as_secs() > 1_600_000_000 { "later" } else { "earlier" }.to_string())
        }
        "random" => {
            let seen: HashSet<u64> = (0..4).map(|_| RandomState::new().hash_one(0)).collect();
            Ok(if seen.len() > 1 { "differs" } else { "repeats" }.to_string())
        }
        "get" => {
            let answer = fetch::fetch("GET", word("url"), &[], b"")?;
            let told = answer.headers.iter().find(|(name, _)| name == "x-told").map(|(_, value)| String::from_utf8_lossy(value));
            Ok(format!("{} {} {}", answer.status, told.unwrap_or_default(), answer.text()))
        }
        "post" => {
            let answer = fetch::fetch("POST", word("url"), &[("x-asked", word("header"))], text.as_bytes())?;
            Ok(format!("{} {}", answer.status, answer.text()))
        }
        other => Err(format!("no order {other}")),
    }
}

impl Guest for Tool {
    fn run(input: ToolInput) -> ToolResult {
        let call: Value = serde_json::from_str(&input.data.unwrap()).unwrap();
        let orders: Value = serde_json::from_str(call["name"].as_str().unwrap()).unwrap();
        let mut made =
            ToolResult { status: Status::Passed, summary: None, data: None, data_path: None, truncated: false, metadata: vec![] };
        if orders == "break" {
            panic!("broke on purpose");
        }
        if orders == "fail" {
            made.status = Status::Failed;
            made.summary = Some("a summary".to_string());
        } else if orders == "meta" {
            made.data = Some("with metadata".to_string());
            made.metadata = [("resource_id", "r-1"), ("state_effect", "read")].map(|(k, v)| (k.to_string(), v.to_string())).to_vec();
        } else {
            let told = orders.as_array().unwrap().iter().map(|order| match outcome(order) {
                Ok(text) => format!("ok: {text}"),
                Err(why) => format!("error: {why}"),
            });
            made.data = Some(Value::from(told.collect::<Vec<_>>()).to_string());
        }
        made
    }
}

export!(Tool);
