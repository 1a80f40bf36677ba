/** Reads bodies of limited size. */

/** Returns the body as text. Throws if it is larger than `limitBytes`. */
export async function readBody(body: AsyncIterable<unknown>, limitBytes: number): Promise<string> {
  const bytes = await readBeginning(body, limitBytes + 1);
  if (bytes.length > limitBytes) throw new Error(`The answer is larger than ${limitBytes} bytes`);
  return bytes.toString('utf8');
}

/** Returns the first `limitBytes` of the body at most, and closes the body after them. */
export async function readBeginning(body: AsyncIterable<unknown>, limitBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    if (!Buffer.isBuffer(chunk)) continue;
    chunks.push(chunk);
    size += chunk.length;
    if (size >= limitBytes) break;
  }
  return Buffer.concat(chunks).subarray(0, limitBytes);
}
