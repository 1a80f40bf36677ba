/**
 * Gauges in the text format of Prometheus, written at each scrape from what they are read from. With 2,000 slots there are 60,000 of their series, and a library that keeps
 * each one as an object takes ten times as long and 100 MB.
 */
import { writeHead, writeLabels, writeSample, type Labels } from './decide/metric-text.ts';

/** Adds a sample. The labels of a sample must differ from those of every other one. */
export type AddSample = (labels: Labels, value: number) => void;

export interface GaugeFacts {
  readonly name: string;
  readonly help: string;
}

/** Returns the lines of one gauge. `read` adds its samples. */
export function writeGauge({ name, help }: GaugeFacts, read: (add: AddSample) => void): string {
  let text = `${writeHead({ name, help, type: 'gauge' })}\n`;
  read((labels, value) => {
    text += `${writeSample(name, writeLabels(labels), value)}\n`;
  });
  return text;
}
