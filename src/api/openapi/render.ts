/** Small parts of the document. */

/** Headers with their meanings, and the one that every answer has. */
export function headersOf(headers: Readonly<Record<string, string>>): Readonly<Record<string, object>> {
  const all = { 'x-request-id': 'Identifies the request in the logs', ...headers };
  return mapValues(all, (description) => ({ description, schema: { type: 'string' } }));
}

export function mapValues<From, To>(record: Readonly<Record<string, From>>, map: (value: From) => To): Readonly<Record<string, To>> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(value)]));
}

export function pascalCase(text: string): string {
  const words = text.split(/[^A-Za-z0-9]+/);
  return words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
}
