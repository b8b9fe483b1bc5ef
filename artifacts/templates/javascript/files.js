// Files of the folders the capsule grants, by relative names, and variables: what JavaScript has no words of its own for.
import { getDirectories } from 'wasi:filesystem/preopens@0.2.1';
import { getEnvironment } from 'wasi:cli/environment@0.2.1';

// A variable of the session, or undefined.
export const env = name => getEnvironment().find(([key]) => key === name)?.[1];

// `config:` of this component's entry in the capsule's manifest, {} without one.
export const config = () => JSON.parse(env('MURMUR_ARTIFACT_CONFIG') ?? '{}');

// The granted folder a path lies in ('.' or 'state'), and the path below it.
function granted(path) {
  const parts = path.split('/').filter(part => part !== '' && part !== '.');
  const folders = getDirectories();
  const named = folders.find(([, name]) => name === parts[0]);
  const [folder] = named ?? folders.find(([, name]) => name === '.') ?? [];
  if (!folder) throw new Error(`${path}: no folder is granted`);
  return [folder, (named ? parts.slice(1) : parts).join('/') || '.'];
}

function open(path, openFlags, flags) {
  const [folder, below] = granted(path);
  try {
    return folder.openAt({ symlinkFollow: true }, below, openFlags, flags);
  } catch (error) {
    throw new Error(`${path}: ${error.payload ?? error}`);
  }
}

// The text of a file, by its relative name.
export function readFile(path) {
  const file = open(path, {}, { read: true });
  const pieces = [];
  let offset = 0n;
  for (let isEnd = false; !isEnd;) {
    const [bytes, end] = file.read(65536n, offset);
    pieces.push(bytes);
    offset += BigInt(bytes.length);
    isEnd = end;
  }
  const whole = new Uint8Array(Number(offset));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return new TextDecoder().decode(whole);
}

export function writeFile(path, text) {
  const file = open(path, { create: true, truncate: true }, { write: true });
  const bytes = new TextEncoder().encode(text);
  for (let at = 0; at < bytes.length;)
    at += Number(file.write(bytes.subarray(at, at + 65536), BigInt(at)));
}

export function listFolder(path) {
  const entries = open(path, { directory: true }, { read: true }).readDirectory();
  const names = [];
  for (let entry; (entry = entries.readDirectoryEntry());) names.push(entry.name);
  return names.sort();
}
