/** Sizes in the form in which an API server stores them. The server normalizes what it receives, and any other form would look like permanent drift. Pure. */

const BINARY = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'] as const;
const DECIMAL = ['', 'k', 'M', 'G', 'T', 'P', 'E'] as const;

/** Returns the canonical quantity for a number of bytes: `9Gi`, `1500M`, `1234567`. */
export function quantityOfBytes(bytes: number): string {
  const whole = Math.ceil(bytes);
  return whole % 1024 === 0 ? withSuffix(whole, 1024, BINARY) : withSuffix(whole, 1000, DECIMAL);
}

function withSuffix(value: number, base: number, suffixes: readonly string[]): string {
  let left = value;
  let index = 0;
  while (left !== 0 && left % base === 0 && index < suffixes.length - 1) {
    left /= base;
    index += 1;
  }
  return `${left}${suffixes[index] ?? ''}`;
}
