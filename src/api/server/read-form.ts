/**
 * Reads a small form (`multipart/form-data`) into memory. Forms of inference requests go through the gateway instead.
 */
import type { BodyProblem } from '../../gateway/body/body-scan.ts';
import { boundaryOf } from '../../gateway/body/decide/multipart-head.ts';
import { MultipartScanner } from '../../gateway/body/multipart-scanner.ts';

/** Field → its text, or the bytes of a file. */
export type Form = Readonly<Record<string, string | Buffer>>;

type ReadForm = { readonly ok: true; readonly fields: Form } | ({ readonly ok: false } & BodyProblem);

/** `contentType` names the boundary. Fields must not repeat. The bytes of files are views of `body`. */
export function readForm(body: Buffer, contentType: string): ReadForm {
  const boundary = boundaryOf(contentType);
  if (boundary === undefined) return wrong('The header "Content-Type" names no boundary of the form', 'Content-Type');
  const scanner = new MultipartScanner(boundary);
  scanner.feed(body);
  if (scanner.status !== 'done') return wrong(scanner.problem?.message ?? scanner.unfinished, scanner.problem?.param ?? null);
  const fields = new Map<string, string | Buffer>();
  for (const { name, fileName, from, bytes } of scanner.parts) {
    const shown = name.slice(0, 100);
    if (fields.has(name)) return wrong(`The field "${shown}" is repeated: send it once`, shown);
    const content = body.subarray(from, from + bytes);
    fields.set(name, fileName === undefined ? content.toString('utf8') : content);
  }
  return { ok: true, fields: Object.fromEntries(fields) };
}

const wrong = (message: string, param: string | null): ReadForm => ({ ok: false, message, param });

/** Arrays and objects are nested in more than `levels` levels. Any answer for invalid JSON. Pure, without recursion. */
export function isDeeperThan(levels: number, json: string): boolean {
  let depth = 0;
  let inString = false;
  for (let index = 0; index < json.length; index += 1) {
    const character = json[index];
    if (inString) {
      if (character === '\\') index += 1;
      else if (character === '"') inString = false;
    } else if (character === '"') inString = true;
    else if (character === '{' || character === '[') {
      depth += 1;
      if (depth > levels) return true;
    } else if (character === '}' || character === ']') depth -= 1;
  }
  return false;
}
