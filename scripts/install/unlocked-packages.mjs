/** Returns the optional packages that an entry of package-lock.json names and for which there is no entry. */
export function unlockedPackages(packages) {
  return Object.entries(packages).flatMap(([parent, { optionalDependencies = {} }]) =>
    Object.entries(optionalDependencies)
      .filter(([name]) => !isLocked(packages, parent, name))
      .map(([name, version]) => ({ name, version, parent })),
  );
}

/** Looks in the `node_modules` of the parent, then in those of the folders above, as Node does. */
function isLocked(packages, parent, name) {
  if (packages[`${parent === '' ? '' : `${parent}/`}node_modules/${name}`] !== undefined) return true;
  if (parent === '') return false;
  return isLocked(packages, parent.slice(0, Math.max(parent.lastIndexOf('/node_modules/'), 0)), name);
}
