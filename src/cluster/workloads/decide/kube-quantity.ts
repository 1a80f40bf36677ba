/** Compares quantities such as `1000m` and `1`: API servers return another text than they were sent. Pure. */

/** Divisors for units below one, which keep decimal fractions exact. */
const PARTS: Readonly<Record<string, number>> = { n: 1e9, u: 1e6, m: 1e3 };
const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};
/** Servers round to a billionth. Nobody changes a quantity by less. */
const PRECISION = 1e-9;

/** Undefined if the value is no quantity. */
export function parseQuantity(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined;
  const match = typeof value === 'string' ? /^([+-]?[0-9.]+)(?:([eE][+-]?[0-9]+)|([A-Za-z]*))$/.exec(value) : null;
  if (match === null) return undefined;
  const [, digits = '', exponent = '', unit = ''] = match;
  const number = Number(`${digits}${exponent}`);
  const divisor = PARTS[unit];
  const factor = divisor === undefined ? UNITS[unit] : 1 / divisor;
  if (factor === undefined || Number.isNaN(number)) return undefined;
  return divisor === undefined ? number * factor : number / divisor;
}

/** Whether both are quantities and mean the same amount. */
export function isSameQuantity(left: unknown, right: unknown): boolean {
  const [a, b] = [parseQuantity(left), parseQuantity(right)];
  return a !== undefined && b !== undefined && Math.abs(a - b) <= PRECISION * Math.max(Math.abs(a), Math.abs(b));
}
