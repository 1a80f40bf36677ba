/** Reads a form with a file. The file goes to disk as it arrives, so that its size takes no memory. */
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import type { IncomingMessage } from 'node:http';
import { finished } from 'node:stream/promises';
import type { Readable } from 'node:stream';
import { RefusalError, type Refusal } from './decide/refusal.ts';
import type { FormParser, FormParserClass } from './native.ts';

export interface Upload {
  readonly fields: readonly (readonly [name: string, value: string])[];
  readonly file: string;
  readonly size: number;
  remove(): Promise<void>;
}

export interface UploadOptions {
  readonly Parser: FormParserClass;
  readonly directory: string;
  /** Bytes of the file. */
  readonly limit: number;
  /** Bytes of all uploads together, which wait on disk. */
  readonly budget: DiskBudget;
}

export interface DiskBudget {
  used: number;
  readonly most: number;
}

const MOST_PARTS = 100;
const FIELD_BYTES = 64 * 1024;
const NAME_BYTES = 200;

const bad = (message: string, param?: string): RefusalError =>
  new RefusalError({ status: 400, code: 'request.invalid', message, ...(param === undefined ? {} : { param }) });
const NOT_MULTIPART: Refusal = {
  status: 415,
  code: 'request.media_type',
  message: 'Send the fields as "multipart/form-data" with a boundary, as "curl -F" does',
};
const DISK_FULL: Refusal = {
  status: 429,
  code: 'engine.queue_full',
  message: 'Send the request again later: too much audio is waiting already',
  retryAfter: 5,
};

/** Throws a `RefusalError` if the form is wrong or too large. */
export async function readUpload(request: IncomingMessage, options: UploadOptions): Promise<Upload> {
  const parser = createParser(request, options);
  const fields: (readonly [string, string])[] = [];
  const files: { readonly path: string; readonly done: Promise<number> }[] = [];
  const problem = Promise.withResolvers<never>();
  problem.promise.catch(() => undefined);
  let failed = false;
  const fail = (error: Error): void => {
    failed = true;
    problem.reject(error);
  };
  parser.on('field', (name, value, nameCut, valueCut) => {
    if (nameCut || valueCut) fail(bad(`Send at most ${FIELD_BYTES} bytes in a field and ${NAME_BYTES} in its name`));
    else if (name === 'file') fail(bad('Send the audio in "file" as a file, not as a text', 'file'));
    else fields.push([name, value]);
  });
  parser.on('file', (name, stream) => {
    stream.on('error', fail);
    if (name !== 'file') return void stream.resume();
    if (files.length > 0) return fail(bad('Send one file only', 'file'));
    const target = path.join(options.directory, `${randomUUID()}.audio`);
    const done = store(stream, target, options);
    done.catch(fail);
    files.push({ path: target, done });
  });
  for (const event of ['partsLimit', 'fieldsLimit', 'filesLimit'] as const)
    parser.on(event, () => fail(bad(`Send at most ${MOST_PARTS} fields and one file`)));
  const whole = new Promise<void>((resolve) => parser.on('finish', resolve));
  // What the parser says is about its own terms.
  parser.on('error', () => fail(bad('End the multipart body with its last boundary: the body is damaged or ends too early')));
  let size = 0;
  const remove = async (): Promise<void> => {
    options.budget.used -= size;
    size = 0;
    await Promise.all(files.map(async (file) => rm(file.path, { force: true })));
  };
  try {
    await Promise.race([feed(request, parser, () => failed), problem.promise]);
    await Promise.race([whole, problem.promise]);
    const [file] = files;
    if (file === undefined) throw bad('Add the audio as a file in the field "file"', 'file');
    size = await Promise.race([file.done, problem.promise]);
    return { fields, file: file.path, size, remove };
  } catch (error) {
    await Promise.allSettled(files.map(async (file) => file.done.then((bytes) => (size += bytes))));
    await remove();
    throw error;
  }
}

function createParser(request: IncomingMessage, { Parser, limit }: UploadOptions): FormParser {
  const { headers } = request;
  if (!/^multipart\/form-data\s*;.*boundary=/i.test(headers['content-type'] ?? '')) throw new RefusalError(NOT_MULTIPART);
  try {
    return new Parser({
      headers,
      limits: {
        fieldNameSize: NAME_BYTES,
        fieldSize: FIELD_BYTES,
        fields: MOST_PARTS,
        files: 2,
        parts: MOST_PARTS,
        fileSize: limit,
        headerPairs: 20,
      },
    });
  } catch {
    throw new RefusalError(NOT_MULTIPART);
  }
}

async function feed(request: IncomingMessage, parser: FormParser, stopped: () => boolean): Promise<void> {
  for await (const chunk of request) {
    if (stopped()) return;
    if (!parser.write(chunk)) await new Promise<void>((resolve) => parser.once('drain', resolve));
  }
  parser.end();
}

/** Returns the bytes of the file. */
async function store(stream: Readable & { truncated: boolean }, target: string, { limit, budget }: UploadOptions): Promise<number> {
  const out = createWriteStream(target, { flags: 'wx', mode: 0o600 });
  let size = 0;
  try {
    for await (const chunk of stream) {
      size += chunk.length;
      budget.used += chunk.length;
      if (budget.used > budget.most) throw new RefusalError(DISK_FULL);
      if (!out.write(chunk)) await once(out, 'drain');
    }
    if (stream.truncated) {
      const message = `Send at most ${limit} bytes of audio, or compress it: the file is larger`;
      throw new RefusalError({ status: 413, code: 'request.too_large', message, param: 'file' });
    }
    out.end();
    await finished(out);
    return size;
  } catch (error) {
    budget.used -= size;
    out.destroy();
    stream.resume();
    throw error;
  }
}
