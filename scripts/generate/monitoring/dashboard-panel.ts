/** The parts of the dashboard. */

/** An expression, and the legend of its series. */
export type Query = readonly [expr: string, legend: string];

export interface Panel {
  readonly title: string;
  readonly description: string;
  readonly kind: 'stat' | 'timeseries' | 'state-timeline';
  /** A unit of Grafana. */
  readonly unit?: string;
  readonly queries: readonly Query[];
}

export interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
}

/** Of the installations that are chosen. A label that does not exist, such as the namespace of a host, matches "all". */
export const JOB = 'namespace=~"$namespace",job=~"$job"';
export const SLOTS = `${JOB},slot=~"$slot"`;
export const RATE = '$__rate_interval';
