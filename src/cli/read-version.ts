/** The version of this program. */
import { readFileSync } from 'node:fs';
import path from 'node:path';

/** `unknown` if the package has no readable `package.json`. */
export function readVersion(): string {
  try {
    const text = readFileSync(path.resolve(import.meta.dirname, '../../package.json'), 'utf8');
    return /"version": "([^"]+)"/.exec(text)?.[1] ?? 'unknown';
  } catch {
    return 'unknown';
  }
}
