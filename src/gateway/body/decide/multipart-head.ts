/** Parses the headers of a multipart body: its boundary, and the names of each part (RFC 7578, RFC 2046). Pure. */

export interface PartHead {
  readonly name: string;
  readonly fileName: string | undefined;
  readonly contentType: string | undefined;
}

/** RFC 2046, 5.1.1: 1 to 70 characters of this set, the last one not a space. */
const BOUNDARY = /^[0-9A-Za-z'()+_,\-./:=? ]{0,69}[0-9A-Za-z'()+_,\-./:=?]$/;
/** `; name=value` or `; name="value"`. In quotes, `\` escapes a quote or itself; browsers write `%22` instead. */
const PARAMETER = /\s*;\s*([!#$%&'*+\-.^_`|~0-9A-Za-z]+)\s*=\s*(?:"((?:\\["\\]|[^"\\]|\\(?!["\\]))*)"|([^\s;"]*))/y;
const HEADER_NAME = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):/;

export function isMultipartType(contentType: string | undefined): boolean {
  return contentType !== undefined && /^\s*multipart\/form-data\s*(?:;|$)/i.test(contentType);
}

/** Undefined if the header names no valid boundary, or two. */
export function boundaryOf(contentType: string): string | undefined {
  const semicolon = contentType.indexOf(';');
  const boundary = semicolon === -1 ? undefined : parametersOf(contentType.slice(semicolon))?.get('boundary');
  return boundary !== undefined && BOUNDARY.test(boundary) ? boundary : undefined;
}

/** `lines`: the header lines of a part in UTF-8. Returns the problem as a string. */
export function parsePartHead(lines: string): PartHead | string {
  let head: PartHead | undefined;
  let contentType: string | undefined;
  for (const line of lines === '' ? [] : lines.split('\r\n')) {
    const name = HEADER_NAME.exec(line)?.[1] ?? '';
    const value = line.slice(name.length + 1).trim();
    // oxlint-disable-next-line no-control-regex -- Control characters would end a header, or a log line, too early
    if (name === '' || /[\0-\x08\x0a-\x1f\x7f]/.test(line))
      return 'A header of a part is malformed: write "Name: value" on a line of its own';
    if (name.toLowerCase() === 'content-type') contentType = value;
    if (name.toLowerCase() !== 'content-disposition') continue;
    if (head !== undefined) return 'A part has two "Content-Disposition" headers: send one';
    const parsed = dispositionOf(value);
    if (typeof parsed === 'string') return parsed;
    head = parsed;
  }
  return head === undefined ? 'A part lacks the header "Content-Disposition: form-data" with one "name"' : { ...head, contentType };
}

function dispositionOf(value: string): PartHead | string {
  const semicolon = value.indexOf(';');
  const type = semicolon === -1 ? value : value.slice(0, semicolon);
  const parameters = semicolon === -1 ? new Map<string, string>() : parametersOf(value.slice(semicolon));
  const name = parameters?.get('name');
  if (type.trim().toLowerCase() !== 'form-data' || parameters === undefined || name === undefined)
    return 'A part lacks the header "Content-Disposition: form-data" with one "name"';
  return { name, fileName: parameters.get('filename') ?? parameters.get('filename*'), contentType: undefined };
}

/** By lower-case names. Undefined if malformed, or if a name is repeated: parsers disagree on which one counts. */
function parametersOf(text: string): ReadonlyMap<string, string> | undefined {
  const found = new Map<string, string>();
  let at = 0;
  while (at < text.length) {
    PARAMETER.lastIndex = at;
    const [whole, name = '', quoted, token = ''] = PARAMETER.exec(text) ?? [];
    if (whole === undefined) return /^\s*;?\s*$/.test(text.slice(at)) ? found : undefined;
    if (found.has(name.toLowerCase())) return undefined;
    found.set(name.toLowerCase(), quoted === undefined ? token : quoted.replace(/\\(["\\])/g, '$1'));
    at += whole.length;
  }
  return found;
}
