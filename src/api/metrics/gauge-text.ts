/**
 * Gauges in the text format of Prometheus, written at each scrape from what they are read from. With 2,000 slots there are 60,000 of their series, and a library that keeps
 * each one as an object takes ten times as long and 100 MB.
 */

export type GaugeLabels = Readonly<Record<string, string>>;

/** Adds a sample. The labels of a sample must differ from those of every other one. */
export type AddSample = (labels: GaugeLabels, value: number) => void;

export interface GaugeFacts {
  readonly name: string;
  readonly help: string;
}

/** Returns the lines of one gauge. `read` adds its samples. */
export function writeGauge({ name, help }: GaugeFacts, read: (add: AddSample) => void): string {
  let text = `# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} gauge\n`;
  read((labels, value) => {
    text += `${name}${writeLabels(labels)} ${writeValue(value)}\n`;
  });
  return text;
}

function writeLabels(labels: GaugeLabels): string {
  let text = '';
  for (const label in labels) text += `${text === '' ? '{' : ','}${label}="${escapeValue(labels[label] ?? '')}"`;
  return text === '' ? '' : `${text}}`;
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}

const NEEDS_ESCAPE = /[\\"\n]/;

/** Nearly no value needs it. */
function escapeValue(text: string): string {
  return NEEDS_ESCAPE.test(text) ? escapeHelp(text).replaceAll('"', '\\"') : text;
}

function writeValue(value: number): string {
  if (Number.isFinite(value) || Number.isNaN(value)) return String(value);
  return value > 0 ? '+Inf' : '-Inf';
}
