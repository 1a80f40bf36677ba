/** A list of names and values. */
import type { JSX } from 'preact';

export type NamedFact = readonly [name: string, value: string];

export function FactList({ facts }: { readonly facts: readonly NamedFact[] }): JSX.Element {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
