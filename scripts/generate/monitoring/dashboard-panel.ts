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
