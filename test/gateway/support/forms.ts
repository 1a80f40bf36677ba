/** Multipart bodies, written as clients write them, and as they should not. */
export const FORM_TYPE = 'multipart/form-data; boundary=----form';

export interface FormPart {
  readonly name: string;
  readonly content: Buffer | string;
  readonly fileName?: string;
  readonly type?: string;
}

/** `end` false: without the last boundary. */
export function formOf(parts: readonly FormPart[], end = true): Buffer {
  const pieces = parts.flatMap(({ name, content, fileName, type }) => {
    const file = fileName === undefined ? '' : `; filename="${fileName}"`;
    const media = type === undefined ? '' : `\r\nContent-Type: ${type}`;
    return [`------form\r\nContent-Disposition: form-data; name="${name}"${file}${media}\r\n\r\n`, content, '\r\n'];
  });
  return Buffer.concat([...pieces, end ? '------form--\r\n' : ''].map((piece) => Buffer.from(piece)));
}
