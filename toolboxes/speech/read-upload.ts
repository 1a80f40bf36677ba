/** Reads a form with a file. */
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { RefusalError, type Refusal } from './decide/refusal.ts';
import type { FormParser, FormParserClass } from './native.ts';
import { keepRecording, type Recording, type RecordingOptions } from './recording.ts';

export interface Upload {
  readonly fields: readonly (readonly [name: string, value: string])[];
  /** The caller removes it. */
  readonly recording: Recording;
}

export interface UploadOptions extends RecordingOptions {
  readonly Parser: FormParserClass;
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

/** Throws a `RefusalError` if the form is wrong or too large. */
export async function readUpload(request: IncomingMessage, options: UploadOptions): Promise<Upload> {
  const parser = createParser(request, options);
  const fields: (readonly [string, string])[] = [];
  const files: { readonly stream: Readable; readonly done: Promise<Recording> }[] = [];
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
    const done = keepRecording(stream, options);
    done.catch(fail);
    files.push({ stream, done });
  });
  for (const event of ['partsLimit', 'fieldsLimit', 'filesLimit'] as const)
    parser.on(event, () => fail(bad(`Send at most ${MOST_PARTS} fields and one file`)));
  const whole = new Promise<void>((resolve) => parser.on('finish', resolve));
  // What the parser says is about its own terms.
  parser.on('error', () => fail(bad('End the multipart body with its last boundary: the body is damaged or ends too early')));
  try {
    await Promise.race([feed(request, parser, () => failed), problem.promise]);
    await Promise.race([whole, problem.promise]);
    const [file] = files;
    if (file === undefined) throw bad('Add the audio as a file in the field "file"', 'file');
    return { fields, recording: await Promise.race([file.done, problem.promise]) };
  } catch (error) {
    // The parser does not end a file whose client has left.
    for (const { stream } of files) stream.destroy();
    await Promise.allSettled(files.map(async (file) => file.done.then(async (recording) => recording.remove())));
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
