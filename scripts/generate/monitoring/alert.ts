/** The parts of an alert rule. */

export interface Alert {
  readonly name: string;
  readonly severity: 'critical' | 'warning' | 'info';
  readonly expr: string;
  /** How long the expression must hold. */
  readonly for: string;
  /** One line of a notification. `{{ $labels.slot }}` is replaced by Prometheus. */
  readonly summary: string;
  readonly meaning: string;
  readonly action: string;
}

/** In a summary: the slot of the alert. */
export const SLOT = '{{ $labels.slot }}';
/** Series of one installation: several may be in one Prometheus. */
export const BY_INSTALLATION = 'namespace, job';
export const BY_SLOT = `${BY_INSTALLATION}, slot`;
