/** Lays out models as other tools keep them, with what these leave behind beside them: partial downloads, other versions, and files that are no models. */
import { createHash } from 'node:crypto';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';

export interface ForeignContents {
  readonly model: Uint8Array;
  readonly projector?: Uint8Array;
}

const LAYER = 'application/vnd.ollama.image.';
const sha256 = (content: Uint8Array): string => createHash('sha256').update(content).digest('hex');

/** Writes a file below `home` and returns its path. */
async function put(home: string, name: string, content: Uint8Array | string): Promise<string> {
  const file = path.join(home, name);
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, content);
  return file;
}

/** As `ollama pull see:1b` leaves it: a manifest that names layers by their hashes. */
export async function layOutOllama(home: string, { model, projector }: ForeignContents): Promise<void> {
  const store = '.ollama/models';
  const parts: readonly (readonly [string, Uint8Array])[] = [
    ['model', model],
    ...(projector === undefined ? [] : [['projector', projector] as const]),
    ['template', Buffer.from('{{ .Prompt }}')],
    ['params', Buffer.from('{"stop":["</s>"]}')],
    ['license', Buffer.from('Apache License')],
  ];
  for (const [, content] of parts) await put(home, `${store}/blobs/sha256-${sha256(content)}`, content);
  const layers = parts.map(([type, content]) => ({
    mediaType: LAYER + type,
    digest: `sha256:${sha256(content)}`,
    size: content.length,
  }));
  await put(home, `${store}/manifests/registry.ollama.ai/library/see/1b`, JSON.stringify({ schemaVersion: 2, layers }));
  const partial = `${store}/blobs/sha256-${'d'.repeat(64)}-partial`;
  await put(home, partial, model.subarray(0, 1000));
  await put(home, `${partial}-0`, '{"N":0,"Offset":0,"Size":1000,"Completed":10}');
}

export async function layOutLmStudio(home: string, { model, projector }: ForeignContents): Promise<void> {
  const models = '.lmstudio/models';
  await put(home, `${models}/publisher/See-GGUF/see-Q4_K_M.gguf`, model);
  if (projector !== undefined) await put(home, `${models}/publisher/See-GGUF/mmproj-see-F16.gguf`, projector);
  await put(home, `${models}/publisher/See-GGUF/downloading_see-Q8_0.gguf.part`, model.subarray(0, 1000));
  await put(home, `${models}/not-in-a-publisher.gguf`, model);
}

/** The older cache of llama.cpp. Newer versions share that of the Hub. */
export async function layOutLlamaCpp(home: string, { model }: ForeignContents): Promise<void> {
  const cache = '.cache/llama.cpp';
  await put(home, `${cache}/owner_repo_say-Q4_K_M.gguf`, model);
  await put(home, `${cache}/owner_repo_say-Q4_K_M.gguf.etag`, '"abc"');
  await put(home, `${cache}/manifest=owner=repo=latest.json`, '{}');
  await put(home, `${cache}/owner_repo_more-Q8_0.gguf.downloadInProgress`, model.subarray(0, 1000));
}

/** Blobs by their hashes, and snapshots of commits with relative links to them. */
export async function layOutHuggingFace(home: string, { model, projector }: ForeignContents): Promise<void> {
  const repo = '.cache/huggingface/hub/models--owner--See-GGUF';
  const [older, current] = ['a'.repeat(40), 'b'.repeat(40)];
  const link = async (commit: string, name: string, content: Uint8Array): Promise<void> => {
    const blob = await put(home, `${repo}/blobs/${sha256(content)}`, content);
    const snapshot = path.join(home, repo, 'snapshots', commit);
    await mkdir(snapshot, { recursive: true });
    await symlink(path.relative(snapshot, blob), path.join(snapshot, name));
  };
  await put(home, `${repo}/refs/main`, current);
  await link(older, 'older-Q4_K_M.gguf', model);
  await link(current, 'see-Q4_K_M.gguf', model);
  if (projector !== undefined) await link(current, 'mmproj-F16.gguf', projector);
  await put(home, `${repo}/blobs/${'e'.repeat(64)}.incomplete`, model.subarray(0, 1000));
}
