/** The board as a caller sees it who may use some models only: the others do not exist. */
import type { RoutedView } from '../reconciler/board.ts';

/**
 * `models`: a slot stands for all of its names, a model id or alias for itself. Undefined: everything is visible. The
 * result is the same object for the same two objects.
 */
export type VisibleTo<View extends RoutedView> = (view: View, models: readonly string[] | undefined) => View;

export function createVisibleBoards<View extends RoutedView>(): VisibleTo<View> {
  const views = new WeakMap<View, WeakMap<readonly string[], View>>();
  return (view, models) => {
    if (models === undefined) return view;
    const known = views.get(view) ?? new WeakMap<readonly string[], View>();
    views.set(view, known);
    const visible = known.get(models) ?? { ...view, ...limit(view, new Set(models)) };
    known.set(models, visible);
    return visible;
  };
}

function limit({ names, slots, refused }: RoutedView, models: ReadonlySet<string>) {
  const visible = [...names].flatMap(([name, serving]) => {
    const allowed = models.has(name) ? serving : serving.filter((slot) => models.has(slot));
    return allowed.length === 0 ? [] : [[name, allowed] as const];
  });
  const reached = new Set(visible.flatMap(([, serving]) => serving));
  return {
    names: new Map(visible),
    slots: new Map([...slots].filter(([name]) => reached.has(name))),
    refused: new Map([...refused].filter(([name]) => models.has(name))),
  };
}
