/** Reads a whole form (`multipart/form-data`) that is small enough to be in memory. Forms of inference requests never are: the gateway passes them on. */
import type { BodyProblem } from '../../gateway/body/body-scan.ts';
import { boundaryOf } from '../../gateway/body/decide/multipart-head.ts';
import { MultipartScanner } from '../../gateway/body/multipart-scanner.ts';

/** By the names of the fields: a text, or the bytes of a file. */
export type Form = Readonly<Record<string, string | Buffer>>;

type ReadForm = { readonly ok: true; readonly fields: Form } | ({ readonly ok: false } & BodyProblem);

/** `contentType`: the header, which names the boundary. A field may be there once. The bytes of files are views of `body`. */
export function readForm(body: Buffer, contentType: string): ReadForm {
  const boundary = boundaryOf(contentType);
  if (boundary === undefined) return wrong('Name the boundary of the form in the header "Content-Type"', 'Content-Type');
  const scanner = new MultipartScanner(boundary);
  scanner.feed(body);
  if (scanner.status !== 'done') return wrong(scanner.problem?.message ?? scanner.unfinished, scanner.problem?.param ?? null);
  const fields = new Map<string, string | Buffer>();
  for (const { name, fileName, from, bytes } of scanner.parts) {
    const shown = name.slice(0, 100);
    if (fields.has(name)) return wrong(`Send the field "${shown}" once`, shown);
    const content = body.subarray(from, from + bytes);
    fields.set(name, fileName === undefined ? content.toString('utf8') : content);
  }
  return { ok: true, fields: Object.fromEntries(fields) };
}

const wrong = (message: string, param: string | null): ReadForm => ({ ok: false, message, param });

/** Whether arrays and objects in a JSON text are nested in more than `levels` levels. Texts that are not JSON give any answer. Pure, and without recursion. */

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
