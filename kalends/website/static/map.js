// Maps with clusters, loaded with Leaflet after consent.
"use strict";
window.drawMap = (box) => {
  const CLUSTER_PIXELS = 44;
  const { attribution, label, searchLabel, tiles } = box.dataset;
  // Each point has a latitude, a longitude, and the indexes of its cards or the name of the venue.
  const points = JSON.parse(box.dataset.points);
  const cards = [...document.querySelectorAll(".map-layout .card")];
  box.replaceChildren();
  box.classList.add("is-loaded");
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", label);
  const animated = !matchMedia("(prefers-reduced-motion: reduce)").matches;
  const map = L.map(box, { zoomAnimation: animated, fadeAnimation: animated, markerZoomAnimation: animated });
  map.attributionControl.setPrefix(false);
  const source = document.createElement("span");
  source.textContent = attribution;
  // Leaflet cancels tiles by a data URL, which the Content-Security-Policy forbids.
  const Tiles = L.TileLayer.extend({ _abortLoading() {}, _removeTile: L.GridLayer.prototype._removeTile });
  new Tiles(tiles, { maxZoom: 19, attribution: source.innerHTML }).addTo(map);

  const describe = (row) => {
    const line = document.createElement("p");
    const card = cards[row];
    const link = card ? card.querySelector(".card-text a").cloneNode(true) : document.createElement("b");
    if (!card) link.textContent = row;
    line.append(link);
    if (card) {
      const when = card.querySelector("time").cloneNode(true);
      when.querySelector(".visitor-time")?.remove();
      line.append(document.createElement("br"), when.textContent);
    }
    return line;
  };

  // Points whose markers would overlap at this zoom become one marker.
  const cluster = () => {
    const groups = [];
    for (const [lat, lng, rows] of points) {
      const at = map.project([lat, lng]);
      const near = groups.find((group) => group.at.distanceTo(at) < CLUSTER_PIXELS);
      if (near) {
        near.rows.push(...rows);
        near.places.push([lat, lng]);
      } else {
        groups.push({ at, rows: [...rows], places: [[lat, lng]] });
      }
    }
    return groups;
  };

  const layer = L.layerGroup().addTo(map);
  const markers = new Map();  // by the index of a card
  const mark = (rows, active) => {
    for (const row of rows) {
      cards[row]?.classList.toggle("is-active", active);
      markers.get(row)?.getElement()?.classList.toggle("is-active", active);
    }
  };
  const draw = () => {
    layer.clearLayers();
    markers.clear();
    for (const { rows, places } of cluster()) {
      const bounds = L.latLngBounds(places);
      const lines = rows.map(describe);
      const title = lines.map((line) => line.firstChild.textContent).join(", ");
      const size = rows.length > 9 ? " is-large" : "";
      const icon = L.divIcon({ className: `map-marker${size}`, html: rows.length > 1 ? `<b>${rows.length}</b>` : "" });
      const marker = L.marker(bounds.getCenter(), { icon, title }).addTo(layer);
      const element = marker.getElement();
      element.setAttribute("aria-label", title);
      const zoom = map.getBoundsZoom(bounds.pad(0.1));
      if (places.length > 1 && zoom > map.getZoom()) {
        const open = () => map.setView(bounds.getCenter(), Math.min(zoom, 17));
        marker.on("click", open);
        marker.on("keypress", ({ originalEvent }) => originalEvent.key === "Enter" && open());
      } else {
        const popup = document.createElement("div");
        popup.append(...lines);
        marker.bindPopup(popup, { maxHeight: 240 });
      }
      for (const row of rows) if (cards[row]) markers.set(row, marker);
      for (const type of ["mouseenter", "focus"]) element.addEventListener(type, () => mark(rows, true));
      for (const type of ["mouseleave", "blur"]) element.addEventListener(type, () => mark(rows, false));
    }
  };
  cards.forEach((card, row) => {
    for (const type of ["mouseenter", "focusin"]) card.addEventListener(type, () => mark([row], true));
    for (const type of ["mouseleave", "focusout"]) card.addEventListener(type, () => mark([row], false));
  });

  const query = new URLSearchParams(location.search);
  const area = ["geoloc_lat", "geoloc_lng"].map((name) => Number(query.get(name) || NaN));
  if (searchLabel && !area.some(isNaN)) {
    map.fitBounds(L.latLng(area).toBounds(2000 * Number(query.get("geoloc_radius") || 40)));
  } else {
    map.fitBounds(points.map(([lat, lng]) => [lat, lng]), { maxZoom: 15, padding: [30, 30] });
  }
  map.on("zoomend", draw);
  draw();

  // After the map was moved, a button lists the events of the area that it shows.
  if (!searchLabel) return;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "search-area";
  button.textContent = searchLabel;
  button.hidden = true;
  box.append(button);
  L.DomEvent.disableClickPropagation(button);
  const offer = () => { button.hidden = false; };
  map.on("dragend", offer);
  box.addEventListener("keyup", ({ key }) => key.startsWith("Arrow") && offer());
  map.on("zoomend", offer);
  button.addEventListener("click", () => {
    const center = map.getCenter().wrap();
    const bounds = map.getBounds();
    // The circle that fits into the longer side of the map.
    const sides = [[center.lat, bounds.getEast()], [bounds.getNorth(), center.lng]];
    const km = Math.max(...sides.map((side) => map.distance(center, side))) / 1000;
    for (const name of ["near", "page"]) query.delete(name);
    query.set("geoloc_lat", center.lat.toFixed(5));
    query.set("geoloc_lng", center.lng.toFixed(5));
    query.set("geoloc_radius", Math.min(Math.max(km, 0.1), 20000).toFixed(km < 10 ? 1 : 0));
    location.search = query;
  });
};
